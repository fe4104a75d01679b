package report

import (
	"io"

	"tacho/report/page"
)

var htmlFormat = Format{
	Name: "html", Ext: "html", Doc: "a page with curves and a timeline of requests: one file that loads nothing",
	Render: func(w io.Writer, r *Report) error { return page.Write(w, r.Runs, r.Thresholds) },
}
