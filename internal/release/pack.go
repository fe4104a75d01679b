package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// tarGz packs files below a directory. All entries have the same owner and time.
func (r *release) tarGz(dir string, files []file) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, d := range directories(dir, files) {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755, ModTime: r.when, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: dir + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: r.when, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return b.Bytes(), err
}

// directories returns the directories of the files, parents first.
func directories(dir string, files []file) []string {
	var all []string
	for _, f := range files {
		for d := path.Dir(dir + "/" + f.name); d != "." && d != "/" && !slices.Contains(all, d); d = path.Dir(d) {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	return all
}

// zip packs files for Windows.
func (r *release) zip(dir string, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: r.when})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// deb builds a Debian package with the binary, its manual and its completions: an ar
// archive of the format version, the control file and the files.
func (r *release) deb(machine string, binary []byte) error {
	files := []file{{"usr/bin/tacho", 0o755, binary}}
	for _, f := range r.extras {
		name := f.name
		switch {
		case strings.HasPrefix(name, "man/"):
			name = "usr/share/man/man1/" + path.Base(name)
		case name == "completions/tacho.bash":
			name = "usr/share/bash-completion/completions/tacho"
		case name == "completions/tacho.zsh":
			name = "usr/share/zsh/vendor-completions/_tacho"
		case name == "completions/tacho.fish":
			name = "usr/share/fish/vendor_completions.d/tacho.fish"
		case name == "LICENSE":
			name = "usr/share/doc/tacho/copyright"
		default:
			name = "usr/share/doc/tacho/" + name
		}
		files = append(files, file{name, f.mode, f.data})
	}
	size := 0
	for _, f := range files {
		size += len(f.data)
	}
	version := r.version
	if version[0] < '0' || version[0] > '9' || !strings.Contains(version, ".") {
		version = "0~git" + r.when.Format("20060102") + "." + version // a Debian version starts with a digit
	}
	control := fmt.Sprintf(`Package: tacho
Version: %s
Architecture: %s
Maintainer: The tacho authors <tacho@localhost>
Installed-Size: %d
Section: net
Priority: optional
Description: measure the latency and throughput of LLM inference servers
 tacho drives an inference server under a known load and reports time to first
 token, inter-token latency, throughput and goodput, with a verdict on its own
 measurement. It takes the flags of vllm bench serve.
`, strings.ReplaceAll(version, "-", "+"), machine, (size+1023)/1024)
	about, err := r.tarGz(".", []file{{"control", 0o644, []byte(control)}})
	if err != nil {
		return err
	}
	data, err := r.tarGz(".", files)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []file{{"debian-binary", 0o644, []byte("2.0\n")}, {"control.tar.gz", 0o644, about}, {"data.tar.gz", 0o644, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, r.when.Unix(), 0, 0, "100644", len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return r.write(fmt.Sprintf("tacho_%s_%s.deb", r.version, machine), b.Bytes())
}
