// Package examples carries the sample definitions and documents that the
// demo, the documentation and the tests use: workflows, tools, a policy and
// a folder of Markdown to report on.
//
// It guarantees that what the program embeds is what the folder shows. It
// must not know what reads it.
package examples

import "embed"

// Files holds workflows/, tools/, policies/, documents/ and a configuration.
//
//go:embed workflows tools policies documents kb console.yaml shop-token
var Files embed.FS
