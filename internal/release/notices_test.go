package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	mit  = "MIT License\n\nPermission is hereby granted, free of\n// charge, to any person"
	bsd3 = "Redistribution and use in source and binary\nforms are permitted. Neither the name of the owner"
)

func TestLicencesIn(t *testing.T) {
	for text, want := range map[string][]string{
		mit:        {"MIT"},
		bsd3:       {"BSD-3-Clause"},
		mit + bsd3: {"MIT", "BSD-3-Clause"},
		bsd3[:60]:  {"BSD-2-Clause"},
		"Apache License\n  Version 2.0, January 2004": {"Apache-2.0"},
		"GNU GENERAL PUBLIC LICENSE":                  nil,
	} {
		if got := licencesIn(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestNotices checks that a package's own licence is included beside its module's, that
// an unknown licence is an error, and that a bill needs a notice for every module.
func TestNotices(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "internal", "hash")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"LICENSE": mit, "internal/hash/LICENSE.txt": bsd3, "licenses.go": "no licence"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*notice{}
	for range 2 {
		if err := addNotice(all, "example.com/m@v1", root, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := all["example.com/m@v1"].identify(); err != nil {
		t.Fatal(err)
	}
	text, err := noticesText(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/m@v1: BSD-3-Clause, MIT\n", mit, bsd3} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("the notices lack %q, or repeat it:\n%s", want, text)
		}
	}
	r := &release{notices: all}
	if got, err := r.licensed("example.com/m@v1"); err != nil || got[0]["expression"] != "BSD-3-Clause AND MIT" {
		t.Error(got, err)
	}
	if _, err := r.licensed("example.com/m@v2"); !errors.Is(err, errNoNotice) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(root, "LICENSE"), []byte("all rights reserved"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := &notice{part: "example.com/m@v1", files: []string{filepath.Join(root, "LICENSE")}}
	if err := closed.identify(); err == nil || !strings.Contains(err.Error(), "example.com/m@v1") {
		t.Error(err)
	}
}
