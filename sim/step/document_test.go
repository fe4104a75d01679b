package step

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tacho-bench/tacho/internal/must"
)

// The document on profiles names every field, and its examples can be parsed.
func TestProfileDocument(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/profile.md"))(t)
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for f := range of.Fields() {
			name := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
			if f.Type.Kind() == reflect.Struct && name != "output" {
				walk(name, f.Type)
			} else if !bytes.Contains(text, []byte("`"+name+"`")) {
				t.Errorf("%s is missing", name)
			}
		}
	}
	walk("", reflect.TypeFor[Profile]())

	var whole Profile
	for i, part := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(part, "```")
		d := yaml.NewDecoder(strings.NewReader(example))
		d.KnownFields(true)
		if err := d.Decode(&whole); err != nil { // later examples extend the first
			t.Fatalf("example %d: %v", i, err)
		}
		if err := whole.Validate(); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
	}
}
