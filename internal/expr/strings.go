package expr

import (
	"math"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// stringFunctions are the common ones of CEL's strings extension under the same
// names. They are our own for two reasons: the extension's replace makes text of
// any size before a cost limit sees it, and its positions refuse JSON numbers.
func stringFunctions() []cel.EnvOption {
	s, n, list := cel.StringType, cel.DynType, cel.ListType(cel.DynType)
	return []cel.EnvOption{
		method("lowerAscii", one(func(t string) ref.Val { return types.String(ascii(t, 'A', 'Z', 'a'-'A')) }), s, s),
		method("upperAscii", one(func(t string) ref.Val { return types.String(ascii(t, 'a', 'z', 'A'-'a')) }), s, s),
		method("trim", one(func(t string) ref.Val { return types.String(strings.TrimSpace(t)) }), s, s),
		method("split", split2, cel.ListType(s), s, s),
		method("indexOf", indexOf, cel.IntType, s, s),
		method("replace", replace, s, s, s, s),
		cel.Function("join",
			cel.MemberOverload("join_list", []*cel.Type{list}, s, cel.FunctionBinding(join)),
			cel.MemberOverload("join_list_separator", []*cel.Type{list, s}, s, cel.FunctionBinding(join))),
		cel.Function("substring",
			cel.MemberOverload("substring_from", []*cel.Type{s, n}, s, cel.FunctionBinding(substring)),
			cel.MemberOverload("substring_from_to", []*cel.Type{s, n, n}, s, cel.FunctionBinding(substring))),
	}
}

func method(name string, f func(...ref.Val) ref.Val, result *cel.Type, args ...*cel.Type) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload(name+"_string", args, result, cel.FunctionBinding(f)))
}

func one(f func(string) ref.Val) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val { return f(text(args[0])) }
}

// text is the argument that the checked signature says is a string.
func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

func ascii(s string, from, to rune, shift rune) string {
	return strings.Map(func(r rune) rune {
		if r >= from && r <= to {
			return r + shift
		}
		return r
	}, s)
}

func split2(args ...ref.Val) ref.Val {
	parts := strings.Split(text(args[0]), text(args[1]))
	return types.NewStringList(types.DefaultTypeAdapter, parts)
}

// indexOf is a position in characters, or -1.
func indexOf(args ...ref.Val) ref.Val {
	i := strings.Index(text(args[0]), text(args[1]))
	if i < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(text(args[0])[:i]))
}

func replace(args ...ref.Val) ref.Val {
	s, old, with := text(args[0]), text(args[1]), text(args[2])
	if strings.Count(s, old)*len(with)+len(s) > ResultMax {
		return tooLong()
	}
	return types.String(strings.ReplaceAll(s, old, with))
}

func tooLong() ref.Val { return types.NewErr("the text would be longer than %d bytes", ResultMax) }

func join(args ...ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return types.NewErr("join needs a list, not %s", typeName(args[0]))
	}
	separator := ""
	if len(args) == 2 {
		separator = text(args[1])
	}
	var b strings.Builder
	n, _ := list.Size().(types.Int)
	for i := types.Int(0); i < n; i++ {
		item, ok := list.Get(i).(types.String)
		if !ok {
			return types.NewErr("join needs a list of text; item %d is %s", i, typeName(list.Get(i)))
		}
		if i > 0 {
			b.WriteString(separator)
		}
		if b.WriteString(string(item)); b.Len() > ResultMax {
			return tooLong()
		}
	}
	return types.String(b.String())
}

// substring counts characters, from 0, the end not included.
func substring(args ...ref.Val) ref.Val {
	runes := []rune(text(args[0]))
	from, ok := position(args[1])
	to, okTo := len(runes), true
	if len(args) == 3 {
		to, okTo = position(args[2])
	}
	if !ok || !okTo || from > to || to > len(runes) {
		return types.NewErr("substring: the positions do not fit a text of %d characters", len(runes))
	}
	return types.String(string(runes[from:to]))
}

func position(v ref.Val) (int, bool) {
	f, ok := double(v)
	if !ok || f != math.Trunc(f) || f < 0 || f > ResultMax {
		return 0, false
	}
	return int(f), true
}

// cost charges text by its size, as CEL's own functions do, so that the cost
// limit bounds memory too.
type cost struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (cost) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	size := 0
	switch function {
	case operators.Add, "replace", "join", "string", "substring", "lowerAscii", "upperAscii", "trim":
		size = len(text(result))
	case "split", "indexOf":
		size = len(text(args[0]))
	default:
		return nil
	}
	units := uint64(1 + size/10)
	return &units
}
