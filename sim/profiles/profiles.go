// Package profiles holds the engine profiles that come with the tool, one
// small YAML file each. Package step says what the fields mean.
package profiles

import "embed"

// FS has the profiles at its root, as NAME.yaml.
//
//go:embed *.yaml
var FS embed.FS
