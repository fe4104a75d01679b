package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noticesFile is the file of an archive with the licences of all modules in the binary.
const noticesFile = "THIRD-PARTY-NOTICES"

// ranksNotice is the origin and the licence of the rank tables that the binary embeds.
const ranksNotice = "token/internal/ranks/NOTICE"

// Parts of the binary that are no module.
const (
	standardLibrary = "Go standard library"
	rankTables      = "rank tables of OpenAI's encodings"
)

// A notice is the licence of one part of the binary.
type notice struct {
	part     string   // a module with its version, or another name
	licences []string // SPDX identifiers
	files    []string // paths of licence and notice files
}

// licenceFile matches names of files with a licence or a notice that must accompany a binary.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)(\.txt|\.md)?$`)

// collectNotices returns the notices of all parts of the binaries of all platforms, by name.
func collectNotices() (map[string]*notice, error) {
	all := map[string]*notice{}
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := addNotice(all, standardLibrary, root, root); err != nil {
		return nil, err
	}
	if err := addNotice(all, rankTables, filepath.Dir(ranksNotice), filepath.Dir(ranksNotice)); err != nil {
		return nil, err
	}
	for _, p := range platforms {
		system, machine, _ := strings.Cut(p, "/")
		list := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}`, "./cmd/tacho") //nolint:noctx // it terminates
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
		list.Stderr = os.Stderr
		text, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p, err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 {
				continue // the standard library, and tacho itself
			}
			if err := addNotice(all, fields[0], fields[1], fields[2]); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range all {
		if err := n.identify(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addNotice adds the licence files in a directory and in its parents up to root. Some
// modules contain packages with a licence of their own.
func addNotice(all map[string]*notice, part, root, dir string) error {
	n := all[part]
	if n == nil {
		n = &notice{part: part}
		all[part] = n
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.Type().IsRegular() && licenceFile.MatchString(e.Name()) && !slices.Contains(n.files, path) {
				n.files = append(n.files, path)
			}
		}
		if dir == root || len(dir) < len(root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// identify finds the SPDX identifiers in the licence files. An unknown licence is an
// error, because a person must decide whether tacho may be distributed with it.
func (n *notice) identify() error {
	slices.SortFunc(n.files, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
	found := map[string]bool{}
	for _, path := range n.files {
		text, err := os.ReadFile(path) //nolint:gosec // a licence file of a module
		if err != nil {
			return err
		}
		for _, id := range licencesIn(string(text)) {
			found[id] = true
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%s: no known licence in %q: read it, and add its words to licencesIn", n.part, n.files)
	}
	n.licences = slices.Sorted(maps.Keys(found))
	return nil
}

// licencesIn returns the SPDX identifiers of the licences in a text.
func licencesIn(text string) (ids []string) {
	words := strings.Join(strings.Fields(strings.ReplaceAll(text, "//", "")), " ")
	if strings.Contains(words, "Apache License") && strings.Contains(words, "Version 2.0") {
		ids = append(ids, "Apache-2.0")
	}
	if strings.Contains(words, "Permission is hereby granted, free of charge") {
		ids = append(ids, "MIT")
	}
	if strings.Contains(words, "Redistribution and use in source and binary forms") {
		if strings.Contains(words, "Neither the name") {
			ids = append(ids, "BSD-3-Clause")
		} else {
			ids = append(ids, "BSD-2-Clause")
		}
	}
	return ids
}

// noticesText returns the file that accompanies the binaries.
func noticesText(all map[string]*notice) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("tacho contains the following software and data, in binary form.\n\n")
	parts := slices.Sorted(maps.Keys(all))
	for _, part := range parts {
		fmt.Fprintf(&b, "%s: %s\n", part, strings.Join(all[part].licences, ", "))
	}
	for _, part := range parts {
		for _, path := range all[part].files {
			text, err := os.ReadFile(path) //nolint:gosec // a licence file of a module
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\n%s\n%s, file %s\n\n%s\n", strings.Repeat("=", 78), part, filepath.Base(path), bytes.TrimSpace(text))
		}
	}
	return b.Bytes(), nil
}

// printNotices prints the notices. The Containerfile puts them into the image.
func printNotices() error {
	all, err := collectNotices()
	if err != nil {
		return err
	}
	text, err := noticesText(all)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

var errNoNotice = errors.New("the notices lack a module of the binary")
