package demo

import (
	"fmt"
	"net/http"
)

// Items is the number of pages in the catalogue. The robots.txt disallows every tenth.
const Items = 200

var (
	colours = []string{"Red", "Blue", "Green", "White", "Black", "Grey", "Yellow", "Brown", "Violet", "Orange"}
	things  = []string{"kettle", "teapot", "cup", "plate", "bowl", "jug", "spoon", "fork", "knife", "pan", "pot", "sieve", "tray", "lamp", "clock", "basket", "stool", "shelf", "towel", "broom"}
)

// An item is what one page of the catalogue shows.
type item struct {
	Number, Previous, Next int // 0: none
	Name, Price            string
}

// addCatalogue adds a page for each item and a list of them. The contents are always the same.
func addCatalogue(mux *http.ServeMux) {
	var all []item
	for n := 1; n <= Items; n++ {
		all = append(all, item{
			Number: n, Previous: n - 1, Next: (n + 1) % (Items + 1),
			Name:  colours[n%len(colours)] + " " + things[n/len(colours)%len(things)],
			Price: fmt.Sprintf("%d.%02d", 2+n*7%40, n*35%100),
		})
	}
	add := func(pattern, name string, data any) {
		mux.HandleFunc("GET shop.example/catalogue/"+pattern, serve(name, page(name, data), nil))
	}
	add("{$}", "catalogue.html", all)
	for _, i := range all {
		add(fmt.Sprintf("%03d.html", i.Number), "item.html", i)
	}
}
