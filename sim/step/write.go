package step

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Write encodes the profile as YAML without its zero fields. remarks are comments
// for fields, by dotted name: "api.event_us", "cost.step at 64".
func (p *Profile) Write(remarks map[string]string) ([]byte, error) {
	var root yaml.Node
	if err := root.Encode(p); err != nil {
		return nil, err
	}
	prune(&root)
	remark(&root, "", remarks)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&root); err != nil {
		return nil, err
	}
	if _, err := parse(b.Bytes()); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return b.Bytes(), nil
}

// prune removes zero fields and reports whether nothing is left.
func prune(n *yaml.Node) (empty bool) {
	switch n.Kind {
	case yaml.MappingNode:
		var kept []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !prune(n.Content[i+1]) {
				kept = append(kept, n.Content[i], n.Content[i+1])
			}
		}
		n.Content = kept
		return len(kept) == 0
	case yaml.SequenceNode:
		return len(n.Content) == 0
	}
	return n.Value == "" || n.Value == "0" || n.Value == "false" || n.Tag == "!!null"
}

// remark adds comments to fields and puts each knot on one line.
func remark(n *yaml.Node, path string, remarks map[string]string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if n.Content[i+1].LineComment = remarks[name]; name == "about" || name == "held_out" {
				n.Content[i+1].Style = yaml.FoldedStyle
			}
			remark(n.Content[i+1], name, remarks)
		}
	case yaml.SequenceNode:
		for _, knot := range n.Content {
			knot.Style = yaml.FlowStyle
			if len(knot.Content) > 1 {
				knot.LineComment = remarks[path+" at "+knot.Content[1].Value]
			}
		}
	}
}
