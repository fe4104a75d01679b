package report

import "io"

// A FileFormat is one way to print a File.
type FileFormat = FormatOf[File]

// FileFormats are all the ways to print a File, in the order help prints them.
var FileFormats = []FileFormat{
	{Name: "text", Doc: "as it was, byte for byte", Render: renderFileText},
	{Name: "json", Doc: "the values of every block, and the text around them", Render: renderFileJSON},
	{Name: "csv", Doc: "one line for each block", Render: renderFileCSV},
}

// FileFormatNamed is the format of that name.
func FileFormatNamed(name string) (FileFormat, error) { return named(FileFormats, "format", name) }

func renderFileText(w io.Writer, f *File) error {
	_, err := io.WriteString(w, f.String())
	return err
}
