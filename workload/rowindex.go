package workload

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A rowIndex knows where the rows of some files are. It has 16 bytes in memory
// for each row.
type rowIndex struct {
	names []string
	texts []*scratch
	rows  []rowPlace // the tag is the number of the file
}

// indexRows finds the rows of files, at most so many if most is not 0. Those
// that check, if it is given, finds something wrong with are told to bad.
func indexRows(files []string, most int, bad *badLines, check func(row []byte) error) (*rowIndex, error) {
	x := &rowIndex{names: files}
	for _, path := range files {
		if err := x.add(path, most, bad, check); err != nil {
			return nil, err
		}
		if most > 0 && len(x.rows) == most {
			break
		}
	}
	return x, nil
}

// add finds the rows of one more file.
func (x *rowIndex) add(path string, most int, bad *badLines, check func(row []byte) error) error {
	text, err := openScratch(path)
	if err != nil {
		return err
	}
	file := uint32(len(x.texts))
	x.texts = append(x.texts, text)
	err = eachRowFrom(path, bad, func(row json.RawMessage, offset int64) error {
		if check != nil {
			if err := check(row); err != nil {
				return err
			}
		}
		place, err := text.keep(row, offset)
		if err != nil {
			return err
		}
		place.tag = file
		if x.rows = append(x.rows, place); len(x.rows) == most {
			return errEnough
		}
		return nil
	})
	return errors.Join(err, text.done())
}

func (x *rowIndex) len() int { return len(x.rows) }

// row is the text of row i.
func (x *rowIndex) row(i uint64) ([]byte, error) {
	p := x.rows[i]
	text, err := x.texts[p.tag].read(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.names[p.tag], err)
	}
	return text, nil
}

// place says where row i is, for people.
func (x *rowIndex) place(i uint64) string {
	p := x.rows[i]
	if text := x.texts[p.tag]; !text.copy {
		return fmt.Sprintf("%s:%d", x.names[p.tag], text.line(p.offset))
	}
	first := i
	for first > 0 && x.rows[first-1].tag == p.tag {
		first--
	}
	return fmt.Sprintf("%s: row %d", x.names[p.tag], i-first+1)
}
