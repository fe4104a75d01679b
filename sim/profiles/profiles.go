// Package profiles embeds the engine profiles, one YAML file each. Package step
// documents the fields.
package profiles

import "embed"

// FS contains the profiles at its root, as NAME.yaml.
//
//go:embed *.yaml
var FS embed.FS
