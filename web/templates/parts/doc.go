// Package parts holds the small pieces pages are made of, each a plain struct
// of what is shown and a templ component that shows it.
//
// It guarantees that every string from outside goes through package visible
// and is direction-isolated, so that a handler may hand over what people,
// agents and programs wrote just as it is; and that no component carries
// inline style or script. View models are strings, numbers, flags and URLs,
// ready formatted: no component takes a clock, and URLs are built by the
// caller with url.PathEscape. It must not know any domain package.
package parts
