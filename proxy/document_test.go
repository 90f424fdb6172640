package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// TestStatusDetails: text of any kind can stand in Proxy-Status.
func TestStatusDetails(t *testing.T) {
	h := http.Header{}
	setStatus(h, "e", "ünprintable\n\x00\"\\"+strings.Repeat("x", 400))
	if list, err := httpsfv.UnmarshalList(h["Proxy-Status"]); err != nil || len(h.Get("Proxy-Status")) > 320 {
		t.Errorf("%v, %v", list, err)
	}
}
