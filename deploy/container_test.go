package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestContainerfile checks that the image contains only the necessary files, runs as an
// unprivileged user, and is not built from files ignored by git.
func TestContainerfile(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(read("../Containerfile"), -1)
	last := stages[len(stages)-1]
	for _, want := range []string{"scratch\n", "\nUSER 65532:65532\n", "\nENTRYPOINT [\"/tacho\"]\n", "/etc/ssl/certs/ca-certificates.crt", "--chown=65532:65532"} {
		if !strings.Contains("\n"+last, want) {
			t.Errorf("the last stage lacks %q:\n%s", want, last)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read("../go.mod"))
	if build := stages[1]; !strings.HasPrefix(build, "golang:"+version[1]+" ") || !strings.Contains(build, "CGO_ENABLED=0 go build -trimpath") {
		t.Errorf("the binary is not built with go %s, or not static:\n%s", version[1], build)
	}
	for line := range strings.Lines(read("../.gitignore")) {
		if name := strings.Trim(strings.TrimSpace(line), "/*"); name != "" && !strings.Contains(read("../.dockerignore"), name) {
			t.Errorf(".dockerignore lacks %s", name)
		}
	}
}
