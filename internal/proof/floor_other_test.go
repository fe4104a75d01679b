//go:build !linux

package proof

import "errors"

func floorClient(load) error { return errors.ErrUnsupported }
