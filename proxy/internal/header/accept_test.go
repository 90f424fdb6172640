package header

import "testing"

func TestNegotiate(t *testing.T) {
	const (
		html  = "text/html"
		plain = "text/plain"
		json  = "application/problem+json"
	)
	for _, c := range []struct {
		name   string
		accept []string
		want   string
	}{
		{"no header", nil, json},
		{"an empty one", []string{""}, json},
		{"curl", []string{"*/*"}, json},
		{"wget", []string{"*/*"}, json},
		{"requests", []string{"*/*"}, json},
		{"wget2", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, html},
		{"Scrapy", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, html},
		{"Chrome", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"}, html},
		{"Firefox", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, html},
		{"a browser, for an image", []string{"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}, json},
		{"a browser, for a script", []string{"*/*"}, json},
		{"Java's HttpURLConnection", []string{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}, html},
		{"axios", []string{"application/json, text/plain, */*"}, json},
		{"jQuery", []string{"application/json, text/javascript, */*; q=0.01"}, json},
		{"lynx", []string{"text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01"}, html},

		{"html", []string{"text/html"}, html},
		{"plain text", []string{"text/plain"}, plain},
		{"any text", []string{"text/*"}, html},
		{"problem+json", []string{"application/problem+json"}, json},
		{"json", []string{"application/json"}, json},
		{"any application", []string{"application/*"}, json},
		{"something else", []string{"image/png"}, json},
		{"parameters", []string{"text/html; charset=utf-8; q=0.5, */*;q=0.1"}, html},
		{"upper case", []string{"TEXT/HTML"}, html},
		{"two lines", []string{"image/png", "text/plain"}, plain},

		{"plain before html", []string{"text/html;q=0.5, text/plain"}, plain},
		{"html before json", []string{"application/json;q=0.5, text/html"}, html},
		{"json before html", []string{"application/json, text/html;q=0.9"}, json},
		{"the specific range overrides the general one", []string{"*/*;q=0.9, text/html;q=0.1"}, json},
		{"in any order", []string{"text/html;q=0.1, */*;q=0.9"}, json},
		{"not json", []string{"application/problem+json;q=0, application/json;q=0, */*"}, html},
		{"problem+json goes before json", []string{"application/json;q=0.1, application/problem+json, text/html;q=0.5"}, json},
		{"and in the other order", []string{"application/problem+json;q=0.1, application/json, text/html;q=0.5"}, html},
		{"not html", []string{"text/html;q=0, */*"}, json},
		{"no html, nor anything else", []string{"text/html;q=0"}, json},
		{"nothing at all", []string{"*/*;q=0"}, json},
		{"text but html", []string{"text/*, text/html;q=0"}, plain},
		{"q above one", []string{"text/plain;q=7, application/json"}, json},
		{"q below zero", []string{"text/html;q=-1"}, json},
		{"q that is not a number", []string{"text/html;q=NaN, text/plain;q=0.1"}, plain},
		{"an infinite q", []string{"text/plain;q=Inf, application/json"}, json},

		{"garbage", []string{";;;,,,=\x00\"", "\xff\xfe", "/", "text/"}, json},
		{"garbage, and html", []string{"te xt/html, ,;q=1, text/html"}, html},
	} {
		if got := Negotiate(c.accept); got != c.want {
			t.Errorf("%s, %q: got %s, want %s", c.name, c.accept, got, c.want)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2")
	f.Add("application/json;q=1e309, text/plain;q=\"0.5\"")
	f.Fuzz(func(t *testing.T, accept string) {
		// The refusal has one of the three media types.
		switch form := Negotiate([]string{accept}); form {
		case "text/html", "text/plain", "application/problem+json":
		default:
			t.Errorf("%q: got %q", accept, form)
		}
	})
}
