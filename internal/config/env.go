package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"robotsgate/internal/field"
)

var variable = regexp.MustCompile(`\$?\$\{[^}]*\}?`)

var variableName = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*\z`)

// errNoVariable says what to write in place of ${ without a name.
var errNoVariable = errors.New("write ${NAME}, or $${ for a literal ${")

// expand replaces each ${NAME} in text with the value that lookup returns. Values are not
// expanded again. $${ stands for a literal ${. Other dollar signs, such as in a bcrypt
// hash, stay.
func expand(text string, lookup func(string) (string, bool)) (out string, replaced bool, err error) {
	out = variable.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		name, closed := strings.CutSuffix(match[2:], "}")
		if !closed || !variableName.MatchString(name) {
			if err == nil {
				err = fmt.Errorf("%q is no variable: %w", field.Cut(match), errNoVariable)
			}
			return match
		}
		value, ok := lookup(name)
		if !ok && err == nil {
			err = fmt.Errorf("the environment variable %s is not set: set it, or write the value here", name)
		}
		replaced = true
		return value
	})
	return out, replaced, err
}
