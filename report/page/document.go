package page

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Document is a page that loads nothing: its style, its script and its data
// stand in it.
type Document struct {
	Frame               string // HTML with the marks below
	Style, Script, Data []byte
	Allow               string // what its policy allows besides, as "connect-src 'self'"
}

// The marks of a frame, in the order in which they stand there.
const (
	policyMark = "/*POLICY*/"
	styleMark  = "/*STYLE*/"
	dataMark   = "/*DATA*/"
	scriptMark = "/*SCRIPT*/"
)

// Policy is the content security policy: it lets nothing in but its own script
// and its own style, by their hashes.
func (d *Document) Policy() string {
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'", hash(d.Script), hash(d.Style))
	if d.Allow != "" {
		policy += "; " + d.Allow
	}
	return policy
}

// Write puts the page together.
func (d *Document) Write(w io.Writer) error {
	out := bufio.NewWriter(w) // keeps the first error for Flush
	rest := d.Frame
	for _, hole := range []struct {
		mark string
		fill []byte
	}{{policyMark, []byte(d.Policy())}, {styleMark, d.Style}, {dataMark, d.Data}, {scriptMark, d.Script}} {
		before, after, _ := strings.Cut(rest, hole.mark)
		_, _ = out.WriteString(before)
		_, _ = out.Write(hole.fill)
		rest = after
	}
	_, _ = out.WriteString(rest)
	return out.Flush()
}

// hash is the source of a policy that allows just this text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Shared is what other pages of this look are made of: the style, and the
// scripts that draw, without those of a report.
func Shared() (style, script []byte, err error) {
	d, err := document("", nil)
	if err != nil {
		return nil, nil, err
	}
	script = []byte("'use strict';\n")
	for _, name := range []string{"base", "draw", "figure"} {
		text, err := assets.ReadFile("assets/" + name + ".js")
		if err != nil {
			return nil, nil, err
		}
		script = append(script, text...)
	}
	return d.Style, script, nil
}

// Policy is that of the page of a report.
func Policy() (string, error) {
	d, err := document("", nil)
	if err != nil {
		return "", err
	}
	return d.Policy(), nil
}

// IsOurs says whether a file is a page that this very program has written, or
// could have: all but its data is, byte for byte, what Write writes, and the data
// cannot end the element that it stands in.
func IsOurs(html []byte) bool {
	var empty bytes.Buffer
	if err := assemble(&empty, []byte(dataMark)); err != nil {
		return false
	}
	before, after, _ := bytes.Cut(empty.Bytes(), []byte(dataMark))
	data, begins := bytes.CutPrefix(html, before)
	data, ends := bytes.CutSuffix(data, after)
	return begins && ends && len(html) <= MostBytes && !slices.Contains(data, '<')
}
