{{- define "svc-router.selector" -}}
app.kubernetes.io/name: svc-router
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc-router.labels" -}}
{{ include "svc-router.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* "true" if the configuration names a PostgreSQL database, which several pods can share. */}}
{{- define "svc-router.shared" -}}
{{- if dig "database" "url_env" "" (fromYaml .Values.config) }}true{{ end -}}
{{- end }}
