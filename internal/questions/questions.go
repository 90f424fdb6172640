// Package questions answers the questions of check, tags and usage --batch, each a line of JSON, and has what these
// commands read of a page and its header.
package questions
