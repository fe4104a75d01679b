{{/* tacho.labels are the labels of the objects of one part of a run: coordinator or agent. */}}
{{- define "tacho.labels" -}}
app.kubernetes.io/name: tacho
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* tacho.claim is the name of the claim for the results, empty if results are kept in the pod alone. */}}
{{- define "tacho.claim" -}}
{{- if .Values.results.claim }}{{ .Values.results.claim }}{{ else if ne (toString .Values.results.size) "0" }}{{ .Release.Name }}-runs{{ end }}
{{- end }}

{{/* tacho.pod is what both pods have: where they run, and as whom. */}}
{{- define "tacho.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532 # as the image runs
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* tacho.container is what both containers have. */}}
{{- define "tacho.container" -}}
image: {{ .Values.image | quote }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* tacho.token is the variable with the token of NATS. */}}
{{- define "tacho.token" -}}
- name: TACHO_NATS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Release.Name }}-keys
      key: nats-token
{{- end }}

{{/* tacho.check refuses flags of bench that cannot work in a pod, or that the chart sets. */}}
{{- define "tacho.check" -}}
{{- range .Values.bench }}
{{- if regexMatch "^--(agents|runs-dir|resume|local|nats(-[a-z]+)?)(=|$)" . }}
{{- fail (printf "bench: leave %s out, because the chart sets it" (splitList "=" . | first)) }}
{{- else if regexMatch "^--api-key(=|$)" . }}
{{- fail "bench: --api-key would be readable in the Job. Put the key into a secret, under api-key, and name the secret in apiKeySecret" }}
{{- else if regexMatch "^(--base-url=)?(unix:|[a-z]+://(localhost|127\\.[0-9.]+|\\[::1\\])([:/]|$))" . }}
{{- fail (printf "bench: %s is the pod itself. Name the server as pods reach it, as http://vllm:8000" .) }}
{{- else if and (regexMatch "^(--(dataset-path|tokenizer)=)?/data/" .) (not $.Values.data.claim) }}
{{- fail (printf "bench: %s is in no volume. Name the claim that holds it in data.claim" .) }}
{{- end }}
{{- end }}
{{- end }}
