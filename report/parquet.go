package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

var parquetFormat = Format{
	Name: "parquet", Ext: "parquet", Binary: true, Doc: "a Parquet file with one row per request (--rows: per level or token); one row per level if the result has no requests; null means not measured",
	Render: renderParquet,
}

// parquetBatch is the number of rows per write.
const parquetBatch = 1024

func renderParquet(w io.Writer, r *Report) error {
	table, err := r.tableOf(cmp.Or(r.Rows, r.finest()))
	if err != nil {
		return err
	}
	codec := &zstd.Codec{} // the package's shared codec pools encoders, which must not cross bubbles of testing/synctest
	group := parquet.Group{}
	for _, c := range table.Columns {
		group[c.Name] = parquet.Optional(parquet.Compressed(parquetLeaf(c.Kind), codec))
	}
	schema := parquet.NewSchema("rows", group)
	place := make([]int, len(table.Columns)) // a schema sorts its columns by name
	for i, c := range table.Columns {
		place[i] = slices.IndexFunc(schema.Columns(), func(path []string) bool { return path[0] == c.Name })
	}
	out := parquet.NewGenericWriter[any](w, schema)
	var batch []parquet.Row
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		values := make(parquet.Row, len(row))
		for i, cell := range row {
			values[place[i]] = parquetValue(table.Columns[i].Kind, cell, place[i])
		}
		if batch = append(batch, values); len(batch) == parquetBatch {
			if _, err := out.WriteRows(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if _, err := out.WriteRows(batch); err != nil {
		return err
	}
	return out.Close()
}

// finest returns the finest kind of rows: a row per request if all levels have records.
func (r *Report) finest() string {
	for _, level := range r.levels() {
		if level.Records == nil {
			return "level"
		}
	}
	return "request"
}

func parquetLeaf(kind cellKind) parquet.Node {
	switch kind {
	case textKind:
		return parquet.String()
	case wholeKind:
		return parquet.Int(64)
	}
	return parquet.Leaf(parquet.DoubleType)
}

func parquetValue(kind cellKind, c cell, column int) parquet.Value {
	switch {
	case !c.Known:
		return parquet.NullValue().Level(0, 0, column)
	case kind == textKind:
		return parquet.ByteArrayValue([]byte(c.Text)).Level(0, 1, column)
	case kind == wholeKind:
		return parquet.Int64Value(int64(c.Number)).Level(0, 1, column)
	}
	return parquet.DoubleValue(c.Number).Level(0, 1, column)
}
