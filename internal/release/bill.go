package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// A component of the bill of materials, as CycloneDX has it.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// bill says what is in a binary, by what Go itself wrote into it.
func (r *release) bill(path, platform string) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	program := component{Type: "application", Ref: "tacho", Name: "tacho", Version: r.version}
	parts := []component{{Type: "framework", Ref: "go", Name: "go", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	refs := []string{"go"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl})
		refs = append(refs, purl)
	}
	properties := []map[string]string{{"name": "platform", "value": platform}}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs") {
			properties = append(properties, map[string]string{"name": s.Key, "value": s.Value})
		}
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":     map[string]any{"timestamp": r.when.Format("2006-01-02T15:04:05Z"), "component": program, "properties": properties},
		"components":   parts,
		"dependencies": []map[string]any{{"ref": "tacho", "dependsOn": refs}},
	}, "", "  ")
}

// homebrew writes a recipe for macOS and Linux. Where the archives lie is for who
// publishes them: RELEASE_URL.
func (r *release) homebrew() error {
	base := os.Getenv("RELEASE_URL")
	if base == "" {
		base = "https://example.com/tacho/" + r.version
	}
	var b strings.Builder
	fmt.Fprintf(&b, `class Tacho < Formula
  desc "Measure the latency and throughput of LLM inference servers"
  homepage "%s"
  version "%s"
  license "Apache-2.0"
`, base, r.version)
	for _, system := range []string{"darwin", "linux"} {
		fmt.Fprintf(&b, "\n  on_%s do\n", map[string]string{"darwin": "macos", "linux": "linux"}[system])
		for _, machine := range []string{"amd64", "arm64"} {
			name := fmt.Sprintf("tacho_%s_%s_%s.tar.gz", r.version, system, machine)
			sum, err := r.sum(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "    on_%s do\n      url \"%s/%s\"\n      sha256 \"%s\"\n    end\n", map[string]string{"amd64": "intel", "arm64": "arm"}[machine], base, name, sum)
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "tacho"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/tacho.bash" => "tacho"
    zsh_completion.install "completions/tacho.zsh" => "_tacho"
    fish_completion.install "completions/tacho.fish"
  end

  test do
    assert_match "tacho", shell_output("#{bin}/tacho version")
  end
end
`)
	return r.write("tacho.rb", []byte(b.String()))
}
