package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A GPU is a sort of GPU, and how many there are.
type GPU struct {
	Count int
	Name  string
}

// GPUs are what a server runs on.
type GPUs []GPU

// UnmarshalText reads 8xMI300X, H100 or 4xH100,4xA100.
func (g *GPUs) UnmarshalText(b []byte) error {
	*g = nil
	for part := range strings.SplitSeq(string(b), ",") {
		gpu := GPU{1, strings.TrimSpace(part)}
		if count, name, found := strings.Cut(gpu.Name, "x"); found {
			if n, err := strconv.Atoi(count); err == nil {
				gpu = GPU{n, strings.TrimSpace(name)}
			}
		}
		if gpu.Count < 1 || gpu.Name == "" {
			return errors.New("write how many and which, as in 8xMI300X or 4xH100,4xA100")
		}
		*g = append(*g, gpu)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (g GPUs) MarshalText() ([]byte, error) {
	parts := make([]string, len(g))
	for i, gpu := range g {
		parts[i] = fmt.Sprintf("%dx%s", gpu.Count, gpu.Name)
	}
	return []byte(strings.Join(parts, ",")), nil
}
