{{/* tacho.own are the labels that select the pods of one part of a run: coordinator or agent. */}}
{{- define "tacho.own" -}}
app.kubernetes.io/name: tacho
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* tacho.labels are the labels of the objects of one part of a run. */}}
{{- define "tacho.labels" -}}
{{ include "tacho.own" . }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* tacho.claim is the name of the claim for the results, empty if results are kept in the pod alone. */}}
{{- define "tacho.claim" -}}
{{- if .Values.results.claim }}{{ .Values.results.claim }}{{ else if ne (toString .Values.results.size) "0" }}{{ .Release.Name }}-runs{{ end }}
{{- end }}

{{/* tacho.secret is the name of the secret with the keys of the run. */}}
{{- define "tacho.secret" -}}
{{- .Values.keys.existingSecret | default (printf "%s-keys" .Release.Name) }}
{{- end }}

{{/* tacho.baseURLs are the values of --base-url, one per line. */}}
{{- define "tacho.baseURLs" -}}
{{- $next := false }}
{{- range .Values.bench }}
{{- if $next }}{{ . }}
{{ end }}
{{- $next = eq . "--base-url" }}
{{- if hasPrefix "--base-url=" . }}{{ trimPrefix "--base-url=" . }}
{{ end }}
{{- end }}
{{- end }}

{{/* tacho.targets are the servers that agents may send to, one per line. Passwords in addresses are left out. */}}
{{- define "tacho.targets" -}}
{{- range .Values.allowTargets }}{{ . }}
{{ else }}
{{- range splitList "\n" (include "tacho.baseURLs" .) }}
{{- if . }}{{ $u := urlParse . }}{{ $u.scheme }}://{{ $u.host }}
{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* tacho.jobLimits end a Job and delete it. */}}
{{- define "tacho.jobLimits" -}}
{{- with .Values.deadlineSeconds }}
activeDeadlineSeconds: {{ int64 . }}
{{- end }}
{{- if ge (int64 .Values.ttlSeconds) 0 }}
ttlSecondsAfterFinished: {{ int64 .Values.ttlSeconds }}
{{- end }}
{{- end }}

{{/* tacho.podMeta is the metadata of the pods of one part. */}}
{{- define "tacho.podMeta" -}}
labels: {{- include "tacho.labels" . | nindent 2 }}
{{- with index .root.Values.podAnnotations "sidecar.istio.io/inject" }}
  sidecar.istio.io/inject: {{ . | quote }} # Istio reads the label
{{- end }}
{{- with .root.Values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* tacho.pod is what both pods have: where they run, and as whom. */}}
{{- define "tacho.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "tacho.affinity" . }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532 # as the image runs
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* tacho.affinity keeps pods away from the server, and spreads the pods of all runs over nodes. */}}
{{- define "tacho.affinity" }}
affinity:
{{- if .Values.affinity }}
  {{- toYaml .Values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    {{- with .Values.server.podLabels }}
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        namespaces: [{{ $.Values.server.namespace | default $.Release.Namespace | quote }}]
        labelSelector:
          matchLabels: {{- toYaml . | nindent 12 }}
    {{- end }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchExpressions:
              - key: app.kubernetes.io/name
                operator: In
                values: [tacho]
{{- end }}
{{- end }}

{{/* tacho.container is what both containers have. */}}
{{- define "tacho.container" -}}
image: {{ .Values.image | quote }}
imagePullPolicy: {{ .Values.imagePullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* tacho.resources are the resources of a container. Memory and disk are limited to the request. */}}
{{- define "tacho.resources" -}}
requests:
  cpu: {{ .of.cpus | quote }}
  memory: {{ .of.memory | quote }}
  ephemeral-storage: {{ .disk | quote }}
limits:
  {{- if .exclusive }}
  cpu: {{ .of.cpus | quote }}
  {{- end }}
  memory: {{ .of.memory | quote }}
  ephemeral-storage: {{ .disk | quote }}
{{- end }}

{{/* tacho.env reads a variable from the secret with the keys. */}}
{{- define "tacho.env" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ include "tacho.secret" .root | quote }}
      key: {{ .key }}
{{- end }}

{{/* tacho.check refuses values that cannot work. */}}
{{- define "tacho.check" -}}
{{- if not .Values.image }}
{{- fail "image: name the image of tacho with its version, as registry.example.com/tacho:0.1.0" }}
{{- else if or (hasSuffix ":latest" .Values.image) (not (regexMatch "(:[^/]+|@sha256:[0-9a-f]+)$" .Values.image)) }}
{{- fail (printf "image: %s can be another version on each node. Name a version or a digest" .Values.image) }}
{{- end }}
{{- if .Values.keys.existingSecret }}
{{- if or .Values.keys.natsToken .Values.keys.coordinatorSeed }}
{{- fail "keys: existingSecret has the keys, so leave natsToken and coordinatorSeed out" }}
{{- end }}
{{- else }}
{{- range list "natsToken" "coordinatorSeed" "trust" "pin" }}
{{- if not (index $.Values.keys .) }}
{{- fail (printf "keys: %s is empty. Run tacho keys > keys.yaml and add -f keys.yaml, or name a secret in keys.existingSecret" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.exclusiveCPUs (not (and (regexMatch "^[0-9]+$" (toString .Values.agent.cpus)) (regexMatch "^[0-9]+$" (toString .Values.coordinator.cpus)))) }}
{{- fail "exclusiveCPUs: only a whole number of CPUs gives a pod its own cores" }}
{{- end }}
{{- range .Values.bench }}
{{- if regexMatch "^--(agents|agent-wait|runs-dir|resume|local|nats(-[a-z]+)?)(=|$)" . }}
{{- fail (printf "bench: leave %s out, because the chart sets it" (splitList "=" . | first)) }}
{{- else if regexMatch "^--api-key(=|$)" . }}
{{- fail "bench: --api-key would be readable in the Job. Put the key into a secret, under api-key, and name the secret in apiKeySecret" }}
{{- else if regexMatch "^(--base-url=)?[a-z]+://[^/]*@" . }}
{{- fail "bench: the password in --base-url would be readable in the Job. Use apiKeySecret" }}
{{- else if regexMatch "^(--base-url=)?(unix:|[a-z]+://(localhost|127\\.[0-9.]+|\\[::1\\])([:/]|$))" . }}
{{- fail (printf "bench: %s is the pod itself. Name the server as pods reach it, as http://vllm:8000" .) }}
{{- else if and (regexMatch "^(--(dataset-path|tokenizer)=)?/data/" .) (not $.Values.data.claim) }}
{{- fail (printf "bench: %s is in no volume. Name the claim that holds it in data.claim" .) }}
{{- end }}
{{- end }}
{{- if not (trim (include "tacho.targets" .)) }}
{{- fail "bench: name the server with --base-url, or name the servers of agents in allowTargets" }}
{{- end }}
{{- end }}
