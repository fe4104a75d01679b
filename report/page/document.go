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

// A Document is a self-contained page with its style, script and data.
type Document struct {
	Frame               string // HTML with the placeholders below
	Style, Script, Data []byte
	Allow               string // additional policy, such as "connect-src 'self'"
}

// The placeholders of a frame, in their order.
const (
	policyMark = "/*POLICY*/"
	styleMark  = "/*STYLE*/"
	dataMark   = "/*DATA*/"
	scriptMark = "/*SCRIPT*/"
)

// Policy returns the content security policy. It allows only the page's own script and
// style, by their hashes.
func (d *Document) Policy() string {
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'", hash(d.Script), hash(d.Style))
	if d.Allow != "" {
		policy += "; " + d.Allow
	}
	return policy
}

// Write writes the page.
func (d *Document) Write(w io.Writer) error {
	out := bufio.NewWriter(w) // keeps the first error for Flush
	rest := d.Frame
	for _, part := range []struct {
		mark string
		fill []byte
	}{{policyMark, []byte(d.Policy())}, {styleMark, d.Style}, {dataMark, d.Data}, {scriptMark, d.Script}} {
		before, after, _ := strings.Cut(rest, part.mark)
		_, _ = out.WriteString(before)
		_, _ = out.Write(part.fill)
		rest = after
	}
	_, _ = out.WriteString(rest)
	return out.Flush()
}

// hash returns the source expression of a policy that allows exactly this text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Shared returns the style and the drawing scripts that other pages share with the
// report.
func Shared() (style, script []byte, err error) {
	d, err := document("", nil)
	if err != nil {
		return nil, nil, err
	}
	script = []byte("'use strict';\n")
	for _, name := range []string{"base", "numbers", "draw", "figure"} {
		text, err := assets.ReadFile("assets/" + name + ".js")
		if err != nil {
			return nil, nil, err
		}
		script = append(script, text...)
	}
	return d.Style, script, nil
}

// Policy returns the content security policy of a report.
func Policy() (string, error) {
	d, err := document("", nil)
	if err != nil {
		return "", err
	}
	return d.Policy(), nil
}

// IsOurs reports whether a file is a page of this version of tacho: everything except
// its data equals the output of Write, and the data cannot close its script element.
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
