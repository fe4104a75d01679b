package rows

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a Parquet file. Its encodings repeat a value for a few bytes, and the library reads a page, and a row, into
// memory at once.
const (
	maxPageValues = 16 << 20
	maxPageBytes  = 1 << 30
	maxListValues = 4 << 20 // values in the lists of a group of rows, or the bytes of the file, if that is more
)

// checkFooter rejects a file whose metadata is longer than the file, because the library allocates the metadata first.
func checkFooter(f io.ReaderAt, size int64) error {
	var end [8]byte // length of the metadata, and PAR1
	if _, err := f.ReadAt(end[:], size-int64(len(end))); err != nil || size < int64(len(end)) {
		return errors.New("not a Parquet file: it is too short")
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size {
		return fmt.Errorf("not a Parquet file: its metadata would have %d bytes, and the file has %d", n, size)
	}
	return nil
}

// checkRows rejects files with rows too large for the memory.
func checkRows(f *os.File, file *parquet.File, size int64) error {
	for _, group := range file.Metadata().RowGroups {
		for i := range group.Columns {
			column := &group.Columns[i].MetaData
			if column.TotalUncompressedSize/max(group.NumRows, 1) > maxLine {
				return fmt.Errorf("rows are larger than %d MiB: shorten them, or remove the column", maxLine>>20)
			}
			values, err := countValues(f, column)
			if err != nil {
				return err
			}
			if most := max(maxListValues, size); values-group.NumRows > most {
				return fmt.Errorf("more than %d values in the lists of %d rows: shorten them, or remove the column", most, group.NumRows)
			}
		}
	}
	return nil
}

// countValues adds up the values of a column by the heads of its pages. The number in the file's metadata may be wrong.
func countValues(f io.ReaderAt, column *format.ColumnMetaData) (values int64, err error) {
	begin := column.DataPageOffset
	if column.DictionaryPageOffset != 0 {
		begin = column.DictionaryPageOffset
	}
	section := io.NewSectionReader(f, begin, column.TotalCompressedSize)
	in := bufio.NewReaderSize(section, 4<<10)
	var protocol thrift.CompactProtocol
	for {
		var head format.PageHeader
		if err := thrift.NewDecoder(protocol.NewReader(in)).Decode(&head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return values, nil // the end of the column, or a cut file, which the library reports
		} else if err != nil {
			return 0, err
		}
		n := int64(head.DataPageHeader.V.NumValues) + int64(head.DataPageHeaderV2.V.NumValues)
		if max(n, int64(head.DictionaryPageHeader.V.NumValues)) > maxPageValues {
			return 0, fmt.Errorf("a page has more than %d values: write the file with smaller pages", maxPageValues)
		}
		if head.UncompressedPageSize > maxPageBytes {
			return 0, fmt.Errorf("a page is larger than %d MiB: write the file with smaller pages", maxPageBytes>>20)
		}
		if n < 0 || head.CompressedPageSize < 0 {
			return 0, errors.New("a page has a negative size")
		}
		values += n
		at, _ := section.Seek(0, io.SeekCurrent) // a section never fails
		_, _ = section.Seek(at-int64(in.Buffered())+int64(head.CompressedPageSize), io.SeekStart)
		in.Reset(section)
	}
}

// sizeOf returns the approximate size of a row.
func sizeOf(v any) (size int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			size += len(name) + sizeOf(value)
		}
	case []any:
		for i := range v {
			size += sizeOf(v[i])
		}
	case string:
		size = len(v)
	}
	return size + 1
}
