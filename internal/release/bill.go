package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// component is a component of a CycloneDX bill of materials.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
	// Licenses is a list with one SPDX expression.
	Licenses []map[string]string `json:"licenses,omitempty"`
}

// licensed returns the licences of a part as a bill of materials lists them.
func (r *release) licensed(part string) ([]map[string]string, error) {
	n := r.notices[part]
	if n == nil {
		return nil, fmt.Errorf("%w: %s", errNoNotice, part)
	}
	return []map[string]string{{"expression": strings.Join(n.licences, " AND ")}}, nil
}

// bill returns the bill of materials of a binary, from the build information Go embeds.
// It fails if the notices lack one of the modules.
func (r *release) bill(path, platform string) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	program := component{Type: "application", Ref: "tacho", Name: "tacho", Version: r.version, Licenses: []map[string]string{{"expression": "Apache-2.0"}}}
	standard, err := r.licensed(standardLibrary)
	if err != nil {
		return nil, err
	}
	tables, err := r.licensed(rankTables)
	if err != nil {
		return nil, err
	}
	parts := []component{
		{Type: "framework", Ref: "go", Name: "go", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), Licenses: standard},
		{Type: "data", Ref: "ranks", Name: rankTables, Licenses: tables},
	}
	refs := []string{"go", "ranks"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		licences, err := r.licensed(m.Path + "@" + m.Version)
		if err != nil {
			return nil, err
		}
		parts = append(parts, component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl, Licenses: licences})
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

// homebrew writes a formula for macOS and Linux. RELEASE_URL is the download address of
// the archives.
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
