package demo

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// The folder pages has a folder for each host. Pages of HTML are templates, with layout.html around them.
//
//go:embed layout.html catalogue.html item.html pages
var files embed.FS

// fields are the response fields of some pages.
var fields = map[string]map[string]string{
	"shop.example/offers.html": {"Robots-Tag": "*;max-snippet=20", "Content-Usage": "search=y, train-ai=n"},
}

// New returns the site.
func New() *Site {
	mux := http.NewServeMux()
	s := &Site{pages: mux, hosts: []string{"down.example"}}
	mux.HandleFunc("down.example/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "The server is down.", http.StatusServiceUnavailable)
	})
	mux.Handle("GET shop.example/moved.html", http.RedirectHandler("/private/plans.html", http.StatusFound))
	s.addFiles(mux)
	addCatalogue(mux)
	return s
}

// addFiles adds the files of the folder pages.
func (s *Site) addFiles(mux *http.ServeMux) {
	err := fs.WalkDir(files, "pages", func(name string, d fs.DirEntry, err error) error {
		address := strings.TrimPrefix(name, "pages/") // host and path
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			content, err := files.ReadFile(name)
			if err != nil {
				return err
			}
			if path.Ext(name) == ".html" {
				content = page(name, nil)
			}
			mux.HandleFunc("GET "+strings.Replace(address, "/index.html", "/{$}", 1), serve(name, content, fields[address]))
		case name != "pages" && !strings.Contains(address, "/"):
			s.hosts = append(s.hosts, address)
		}
		return nil
	})
	if err != nil {
		panic(err) // embedded files can be read
	}
}

// page returns a page made of a template and the layout.
func page(name string, data any) []byte {
	var b bytes.Buffer
	if err := template.Must(template.ParseFS(files, "layout.html", name)).ExecuteTemplate(&b, "layout.html", data); err != nil {
		panic(err) // the template is wrong
	}
	return b.Bytes()
}

// serve answers with a file, which has an ETag, so that clients can ask whether it has changed.
func serve(name string, content []byte, fields map[string]string) http.HandlerFunc {
	etag := fmt.Sprintf(`"%.8x"`, sha256.Sum256(content))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		for name, value := range fields {
			w.Header().Set(name, value)
		}
		http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(content))
	}
}
