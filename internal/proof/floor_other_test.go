//go:build !linux

package proof

import (
	"errors"
	"testing"
)

func floorClient(load) error { return errors.ErrUnsupported }

func listen(*testing.B, string, int, int) *Seen { return nil }
