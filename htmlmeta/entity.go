package htmlmeta

import "regexp"

// entities are the texts that a page declares for references such as "&n;" in
// its document type (XML 1.0, section 4.2.1).
type entities map[string]string

// Bounds on entities: a few words for a few metas.
const (
	maxEntities = 16
	maxExpanded = 4 << 10 // in one attribute
)

// entityDeclaration matches plain text only: what refers to something else,
// inside the page or outside, is not followed, so nothing is expanded twice.
var entityDeclaration = regexp.MustCompile(
	`<!ENTITY\s+([A-Za-z_][A-Za-z0-9._-]{0,40})\s+(?:"([^"&%<]{0,256})"|'([^'&%<]{0,256})')\s*>`)

var entityReference = regexp.MustCompile(`&[A-Za-z_][A-Za-z0-9._-]{0,40};`)

// declare reads the declarations in a directive. The first of a name binds.
func (e *entities) declare(directive []byte) {
	for _, m := range entityDeclaration.FindAllSubmatch(directive, maxEntities) {
		if *e == nil {
			*e = make(entities)
		}
		reference := "&" + string(m[1]) + ";"
		if _, ok := (*e)[reference]; !ok && len(*e) < maxEntities {
			(*e)[reference] = string(m[2]) + string(m[3])
		}
	}
}

// expand puts in the texts of the references in an attribute, which the reader
// of XML has left there as it doesn't know them. One that the page has escaped
// looks the same by then.
func (e entities) expand(s string) string {
	if len(e) == 0 {
		return s
	}
	left := maxExpanded
	return entityReference.ReplaceAllStringFunc(s, func(reference string) string {
		text, ok := e[reference]
		if !ok || len(text) > left {
			return reference
		}
		left -= len(text)
		return text
	})
}
