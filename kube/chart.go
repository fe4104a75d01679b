package kube

import (
	"bytes"
	"fmt"
	"strings"
)

// markers stand in the manifests where a chart has its values.
const (
	manyAgents = 987654321
	noCPUs     = "123456789"
	noMemory   = "123456789Gi"
	noSize     = "555555555Gi"
)

// Chart is the template of a Helm chart: the manifests, with the values of the
// chart in place of those that Options have.
func Chart() (string, error) {
	o := Options{
		Name: "release", Image: "the-image", Agents: manyAgents, CPUs: noCPUs, Memory: noMemory, Bench: []string{"bench-flags"}, Allow: []string{"allowed"},
		Token: "the-token", Seed: "the-seed", Trust: "the-trust", Size: noSize, KeySecret: "the-key-secret",
		NodePool: map[string]string{"node": "pool"}, PullSecrets: []string{"pull"},
	}
	var b bytes.Buffer
	if err := o.Write(&b); err != nil {
		return "", err
	}
	text := b.String()
	for _, r := range [][2]string{
		{"release", "{{ .Release.Name }}"},
		{"the-image", "{{ .Values.image | quote }}"},
		{fmt.Sprint(manyAgents), "{{ .Values.agents }}"},
		{`"{{ .Values.agents }}"`, "{{ .Values.agents | quote }}"},
		{`"` + noCPUs + `"`, "{{ .Values.agent.cpus | quote }}"},
		{noMemory, "{{ .Values.agent.memory | quote }}"},
		{noSize, "{{ .Values.results.size | quote }}"},
		{"the-token", "{{ .Values.keys.natsToken | quote }}"},
		{"the-seed", "{{ .Values.keys.coordinatorSeed | quote }}"},
		{"the-trust", "{{ .Values.keys.trust | quote }}"},
		{"name: the-key-secret", "name: {{ .Values.apiKeySecret | default \"none\" | quote }}\n                  optional: true"},
		{"            - bench-flags\n", "            {{- range .Values.bench }}\n            - {{ . | quote }}\n            {{- end }}\n"},
		{"            - --allow-target\n            - allowed\n", "            {{- range .Values.allowTargets }}\n            - --allow-target\n            - {{ . | quote }}\n            {{- end }}\n"},
		{"      nodeSelector:\n        node: pool\n", "      nodeSelector: {{- toYaml .Values.nodeSelector | nindent 8 }}\n"},
		{"      imagePullSecrets:\n        - name: pull\n", "      imagePullSecrets: {{- toYaml .Values.imagePullSecrets | nindent 8 }}\n"},
		{"claimName: {{ .Release.Name }}-runs", `claimName: {{ .Values.results.claim | default (printf "%s-runs" .Release.Name) | quote }}`},
	} {
		if !strings.Contains(text, r[0]) {
			return "", fmt.Errorf("the manifests have no %q for the chart", r[0])
		}
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	return conditional(text, "kind: PersistentVolumeClaim", "{{- if not .Values.results.claim }}")
}

// conditional has the document that holds a line only where a condition holds.
func conditional(text, line, condition string) (string, error) {
	docs := strings.Split(text, "---\n")
	for i, d := range docs {
		if strings.Contains(d, line) {
			docs[i] = condition + "\n" + d + "{{- end }}\n"
			return strings.Join(docs, "---\n"), nil
		}
	}
	return "", fmt.Errorf("the manifests have no %q", line)
}
