// Package tracing turns a finished Interruption into OpenTelemetry spans. It is pure: the record in
// the API is the only input, and the same record always gives the same spans with the same ids.
package tracing
