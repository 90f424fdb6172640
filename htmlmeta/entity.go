package htmlmeta

import "regexp"

// entities are the texts that a page declares for references such as "&n;" in
// its document type (XML 1.0, section 4.2.1).
type entities map[string]string

// Bounds on entities.
const (
	maxEntities = 16
	maxExpanded = 4 << 10 // in one attribute
)

// entityDeclaration matches an entity of plain text. Entities that refer to other
// entities or files are ignored, so nothing is expanded twice.
var entityDeclaration = regexp.MustCompile(
	`<!ENTITY\s+([A-Za-z_][A-Za-z0-9._-]{0,40})\s+(?:"([^"&%<]{0,256})"|'([^'&%<]{0,256})')\s*>`)

var entityReference = regexp.MustCompile(`&[A-Za-z_][A-Za-z0-9._-]{0,40};`)

// declare adds the declarations in a directive. Of several for a name the first
// counts.
func (e entities) declare(directive []byte) {
	for _, m := range entityDeclaration.FindAllSubmatch(directive, maxEntities) {
		reference := "&" + string(m[1]) + ";"
		if _, ok := e[reference]; !ok && len(e) < maxEntities {
			e[reference] = string(m[2]) + string(m[3])
		}
	}
}

// expand replaces the references in an attribute that the XML decoder did not
// know and so left as they were. An escaped reference, such as "&amp;n;", looks
// the same at this point and is replaced too.
func (e entities) expand(s string) string {
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
