// Package config reads a configuration: strict YAML, with every mistake reported at once, each with its line. It knows
// the meaning of no key: [Decode] fills a struct, whose fields say by their tags what may be written. Each part of
// the gate has the struct of its own keys, with their defaults and their check:
//
//   - yaml: the name of the key
//   - doc: completes "expected …" in a mistake
//   - enum: the values that are allowed
//   - positive: the value must be more than zero
//   - size: the number is one of bytes, with a unit
//   - path: a relative path starts at the file's folder; "or -": - is no path
//   - restart: the key takes effect at start only, see [Restrain]
//   - secret: mistakes do not repeat the value, which may be a password
//   - hidden: [Effective] writes a mark in place of the value
//   - glob: what a glob.Glob matches, "host" or "text"
//
// An item of a list of structs begins with the values that the method SetDefaults of its type sets, if there is one. A
// struct with the yaml tag ",inline" adds its keys to those of the struct around it.
package config
