package proxy

import (
	"net/http"

	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/header"
)

// UsageFields returns the response header's fields for what is stated about the use of a page.
func UsageFields(stated usage.Stated) http.Header {
	h, f := http.Header{}, header.NewField()
	s := signals{inspection: inspection{Stated: stated}}
	if writeUsage(f, &s) {
		f.Set(h, headerUsage)
	}
	if writeLicense(f, &s) {
		f.Set(h, headerLicense)
	}
	return h
}
