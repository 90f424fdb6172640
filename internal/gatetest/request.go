package gatetest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Client returns a client that uses a proxy, or none if its URL is empty.
func Client(t testing.TB, proxy string) *http.Client {
	t.Helper()
	transport, err := newTransport(proxy, "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * patience}
}

// Request sends a request, checks the status, and returns the body and the header.
func Request(t testing.TB, client *http.Client, method, url string, status int) (body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, data, err := do(client, req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Errorf("%s %s: got %s, want %d", method, url, resp.Status, status)
	}
	return string(data), resp.Header
}

// Matches returns what the first group of a pattern matches, sorted and without duplicates.
func Matches(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// PageLines returns the lines for each client on the gate's own page.
func PageLines(page string) map[string][]string {
	all := map[string][]string{}
	client := ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if text, indented := strings.CutPrefix(line, "    "); indented {
			all[client] = append(all[client], text)
		} else {
			client = line
		}
	}
	return all
}
