package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

var parquetFormat = Format{
	Name: "parquet", Ext: "parquet", Binary: true, Doc: "a Parquet file with a row for each request, or by --rows for each level or token; a result without requests has its levels; null is not measured",
	Render: renderParquet,
}

// parquetBatch is how many rows are handed on at a time.
const parquetBatch = 1024

func renderParquet(w io.Writer, r *Report) error {
	table, err := r.tableOf(cmp.Or(r.Rows, r.finest()))
	if err != nil {
		return err
	}
	codec := &zstd.Codec{} // of its own: the pool of the package's would share encoders with other bubbles of testing/synctest
	group := parquet.Group{}
	for _, c := range table.Columns {
		group[c.Name] = parquet.Optional(parquet.Compressed(parquetLeaf(c.Kind), codec))
	}
	schema := parquet.NewSchema("rows", group)
	place := make([]int, len(table.Columns)) // a schema has its columns in the order of their names
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

// finest is a row for each request, where requests are known.
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
