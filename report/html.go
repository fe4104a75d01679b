package report

import (
	"io"

	"github.com/tacho-bench/tacho/report/page"
)

var htmlFormat = Format{
	Name: "html", Ext: "html", Doc: "a page with curves and a timeline of requests, in one self-contained file",
	Render: func(w io.Writer, r *Report) error { return page.Write(w, r.Runs, r.Thresholds) },
}
