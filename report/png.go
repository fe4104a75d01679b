package report

import (
	"io"

	"github.com/tacho-bench/tacho/report/picture"
)

var pngFormat = Format{
	Name: "png", Ext: "png", Binary: true, Doc: "a picture of the conclusion, its three numbers and one chart, for chats and slides",
	Render: func(w io.Writer, r *Report) error { return picture.Write(w, r.Runs) },
}
