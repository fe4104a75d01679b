package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

var parquetFormat = Format{
	Name: "parquet", Ext: "parquet", Binary: true, Doc: "the rows and columns of csv in a Parquet file; null means not measured",
	Render: renderParquet,
}

func renderParquet(w io.Writer, r *Report) error {
	table, err := r.table()
	if err != nil {
		return err
	}
	codec := &zstd.Codec{} // the package's shared codec pools encoders, which must not cross bubbles of testing/synctest
	group := parquet.Group{}
	for _, c := range table.Columns {
		group[c.Name] = parquet.Optional(parquet.Compressed(parquetLeaf(c.Kind), codec))
	}
	out := parquet.NewGenericWriter[any](w, parquet.NewSchema("rows", parquetColumns{group, table.Columns}))
	var batch []parquet.Row
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		values := make(parquet.Row, len(row))
		for i, cell := range row {
			values[i] = parquetValue(table.Columns[i].Kind, cell, i)
		}
		if batch = append(batch, values); len(batch) == 1024 {
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

// parquetColumns is a group with its fields in the order of a table. parquet.Group sorts them by name.
type parquetColumns struct {
	parquet.Group
	order []column
}

// Fields implements parquet.Node.
func (c parquetColumns) Fields() []parquet.Field {
	place := map[string]int{}
	for i := range c.order {
		place[c.order[i].Name] = i
	}
	fields := c.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int { return cmp.Compare(place[a.Name()], place[b.Name()]) })
	return fields
}

func parquetLeaf(kind cellKind) parquet.Node {
	switch kind {
	case textKind:
		return parquet.String()
	case wholeKind:
		return parquet.Int(64)
	case timeKind:
		return parquet.Timestamp(parquet.Millisecond)
	}
	return parquet.Leaf(parquet.DoubleType)
}

func parquetValue(kind cellKind, c cell, column int) parquet.Value {
	switch {
	case !c.Known:
		return parquet.NullValue().Level(0, 0, column)
	case kind == textKind:
		return parquet.ByteArrayValue([]byte(c.Text)).Level(0, 1, column)
	case kind == wholeKind || kind == timeKind:
		return parquet.Int64Value(int64(c.Number)).Level(0, 1, column)
	}
	return parquet.DoubleValue(c.Number).Level(0, 1, column)
}
