package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/internal/problem"
)

// check reads src token by token and refuses what Canonical refuses.
func check(src []byte, l Limits) error {
	if len(src) > l.Bytes {
		return problem.New(problem.TooLarge, "too_large",
			"The JSON is %d bytes long; at most %d are accepted.", len(src), l.Bytes)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(src))
	keys := 0
	for {
		tok, err := dec.ReadToken()
		if err == io.EOF {
			return malformed(src, &jsontext.SyntacticError{ByteOffset: int64(len(src)), Err: errors.New("there is no value")})
		}
		if err != nil {
			return unreadable(src, err)
		}
		depth := dec.StackDepth()
		if depth > l.Depth {
			return tooMuch("too_deep", dec, "The JSON nests deeper than %d levels.", l.Depth)
		}
		kind, n := dec.StackIndex(depth)
		if kind == '{' && n%2 == 1 && tok.Kind() == '"' {
			if keys++; keys > l.Keys {
				return tooMuch("too_many_keys", dec, "The JSON has more than %d object members.", l.Keys)
			}
		}
		if tok.Kind() == '0' {
			if err := checkNumber(tok.String(), dec.StackPointer()); err != nil {
				return err
			}
		}
		if depth == 0 {
			return checkEnd(src, dec)
		}
	}
}

// checkEnd refuses a second value.
func checkEnd(src []byte, dec *jsontext.Decoder) error {
	at := dec.InputOffset()
	rest := bytes.TrimLeft(src[at:], " \t\r\n")
	if len(rest) == 0 {
		return nil
	}
	at = int64(len(src) - len(rest))
	return malformed(src, &jsontext.SyntacticError{ByteOffset: at, Err: errors.New("there is more after the value; send exactly one")})
}

func tooMuch(code string, dec *jsontext.Decoder, format string, limit int) error {
	return problem.New(problem.TooLarge, code, format, limit).At(short(dec.StackPointer()), "the limit of %d is passed here", limit)
}

func unreadable(src []byte, err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return problem.New(problem.Malformed, "malformed_json", "The JSON can't be read.").Because(err)
	}
	if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
		line, col := place(src, syntax.ByteOffset)
		where := short(syntax.JSONPointer)
		return problem.New(problem.Malformed, "duplicate_key", "Duplicate key %s at line %d, column %d: each name may appear once in an object.", where, line, col).
			At(where, "appears twice").With("offset", syntax.ByteOffset).With("line", line).With("column", col)
	}
	if errors.Is(syntax.Err, io.ErrUnexpectedEOF) {
		syntax = &jsontext.SyntacticError{ByteOffset: int64(len(src)), JSONPointer: syntax.JSONPointer, Err: errors.New("the text ends too early")}
	}
	return malformed(src, syntax)
}

func malformed(src []byte, e *jsontext.SyntacticError) error {
	line, col := place(src, e.ByteOffset)
	what := strings.TrimPrefix(e.Err.Error(), "jsontext: ")
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		what = "it starts with a byte order mark; send UTF-8 without one"
	}
	return problem.New(problem.Malformed, "malformed_json", "This is not valid JSON (line %d, column %d): %s.", line, col, what).
		At(short(e.JSONPointer), "%s", what).With("offset", e.ByteOffset).With("line", line).With("column", col)
}

// place turns a byte offset into a line and a column of characters, from 1.
func place(src []byte, offset int64) (line, col int) {
	before := src[:min(offset, int64(len(src)))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// pointerMax bounds a pointer repeated in a message, in bytes: names come from
// the sender.
const pointerMax = 256

func short(p jsontext.Pointer) string {
	s := string(p)
	if len(s) > pointerMax {
		cut := pointerMax
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return fmt.Sprintf("%s…", s[:cut])
	}
	return s
}
