package report

import "io"

// A FileFormat is one way to print a File.
type FileFormat = FormatOf[File]

// FileFormats are the formats of a File, in the order of the help text.
var FileFormats = []FileFormat{
	{Name: "text", Doc: "the text as it was read, byte for byte", Render: func(w io.Writer, f *File) error {
		_, err := io.WriteString(w, f.String())
		return err
	}},
	{Name: "json", Doc: "the values of every block, and the text around them", Render: renderFileJSON},
	{Name: "csv", Doc: "one line for each block", Render: renderFileCSV},
}

// FileFormatNamed returns the format with the given name.
func FileFormatNamed(name string) (FileFormat, error) { return named(FileFormats, "format", name) }
