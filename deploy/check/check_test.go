package check

import (
	"bytes"
	"maps"
	"os"
	"testing"
)

var all = map[string]int{"Secret": 1, "Service": 1, "PersistentVolumeClaim": 1, "Job": 2, "NetworkPolicy": 2}

func TestManifests(t *testing.T) {
	text, err := os.ReadFile("testdata/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := Objects(text)
	if err != nil || !maps.Equal(kinds, all) {
		t.Error(kinds, err)
	}
	for _, change := range [][2]string{{"parallelism: 2", "paralelism: 2"}, {"parallelism: 2", "parallelism: many"}, {"runAsNonRoot: true", "runAsNonRoot: 1"}, {"kind: Service", "kind: Servant"}} {
		bad := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(bad, text) {
			t.Fatalf("no %s", change[0])
		}
		if _, err := Objects(bad); err == nil {
			t.Errorf("no fault in %s", change[1])
		}
	}
}
