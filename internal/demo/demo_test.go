package demo

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// request sends a request to the site and returns the response with its body.
func request(t *testing.T, s *Site, method, address string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := s.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestSite follows every link of the site, and asks of its robots.txt which pages are denied.
func TestSite(t *testing.T) {
	s := New()
	_, robots := request(t, s, http.MethodGet, "https://shop.example/robots.txt", nil)
	queue, titles := []string{"https://shop.example/"}, map[string]string{}
	var denied []string
	var rules policy.Robots
	for i := 0; i < len(queue); i++ {
		at, err := url.Parse(queue[i])
		if err != nil {
			t.Fatal(err)
		}
		if at.Host == "nowhere.example" || at.Host == "down.example" {
			continue
		}
		resp, body := request(t, s, http.MethodGet, at.String(), nil)
		if resp.StatusCode != http.StatusOK && at.Path != "/moved.html" {
			t.Errorf("%s: status %d", at, resp.StatusCode)
		}
		if target, err := canonical.ParseURL(at.String()); err != nil {
			t.Error(err)
		} else if at.Host == "shop.example" && !rules.Judge(200, []byte(robots), target, nil).Allow {
			denied = append(denied, at.Path)
		}
		if m := regexp.MustCompile(`<title>(.+)</title>`).FindStringSubmatch(body); m != nil {
			if other := titles[m[1]]; other != "" {
				t.Errorf("%s and %s have the title %s", other, at, m[1])
			}
			titles[m[1]] = at.Path
		} else if strings.HasSuffix(at.Path, "/") {
			t.Errorf("%s has no title", at)
		}
		for _, m := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			to, err := at.Parse(m[1])
			if err != nil {
				t.Fatal(err)
			}
			to.Scheme = "https"
			if m[1] != "data:," && !slices.Contains(queue, to.String()) {
				queue = append(queue, to.String())
			}
		}
	}
	items := 0
	for _, path := range denied {
		if strings.HasPrefix(path, "/catalogue/") {
			items++
		}
	}
	if len(titles) < Items || items != Items/10 || len(denied) != Items/10+2 {
		t.Errorf("%d pages, of which %d of the catalogue and these are denied: %q", len(titles), items, denied)
	}
}

// TestHosts requests hosts and ports that have no pages.
func TestHosts(t *testing.T) {
	s := New()
	for address, want := range map[string]func(error) bool{
		"http://nowhere.example/": func(err error) bool {
			dns, ok := errors.AsType[*net.DNSError](err)
			return ok && dns.IsNotFound
		},
		"http://shop.example:8080/": func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := s.RoundTrip(r); !want(err) {
			t.Errorf("%s: got %v, %v", address, resp, err)
		}
	}
	for host, want := range map[string]bool{"shop.example": true, "x.example": true, "example": false, "example.com": false, "127.0.0.1": false} {
		if Has(host) != want {
			t.Errorf("Has(%q) is %v", host, !want)
		}
	}
}

// TestAnswers compares the responses to methods and conditions with those of a server.
func TestAnswers(t *testing.T) {
	s := New()
	get, body := request(t, s, http.MethodGet, "http://shop.example/news.html", nil)
	length := strconv.Itoa(len(body))
	if get.StatusCode != 200 || get.Header.Get("Content-Length") != length || get.ContentLength != int64(len(body)) {
		t.Errorf("GET: got %+v", get)
	}
	head, body := request(t, s, http.MethodHead, "http://shop.example/news.html", nil)
	if head.StatusCode != 200 || head.Header.Get("Content-Length") != length || body != "" {
		t.Errorf("HEAD: got %+v, %q", head, body)
	}
	same, body := request(t, s, http.MethodGet, "http://shop.example/news.html", http.Header{"If-None-Match": {get.Header.Get("ETag")}})
	if same.StatusCode != 304 || same.Header.Get("Content-Length") != "" || body != "" {
		t.Errorf("with the ETag: got %+v, %q", same, body)
	}
	if post, _ := request(t, s, http.MethodPost, "http://shop.example/news.html", nil); post.StatusCode != 405 {
		t.Errorf("POST: got %+v", post)
	}
	if missing, _ := request(t, s, http.MethodGet, "http://shop.example/missing", nil); missing.StatusCode != 404 {
		t.Errorf("a path without a page: got %+v", missing)
	}
}
