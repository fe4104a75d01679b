//go:build vllm

package cli_test

import "testing"

func (ref *reference) reports(t *testing.T) {}
func (ref *reference) bodies(t *testing.T)  {}
func (ref *reference) streams(t *testing.T) {}
