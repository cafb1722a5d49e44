package expr

import (
	"encoding/json"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celenv "cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"countersign/internal/canon"
)

// standard is what we take of CEL's standard library. Left out: timestamps and
// durations (no clock, and JSON has neither), bytes, uint and type values; and
// the arithmetic and string(), which functions.go replaces.
var standard = celenv.NewLibrarySubset().
	AddIncludedMacros(operators.Has, operators.All, operators.Exists, operators.ExistsOne, operators.Map, operators.Filter).
	AddIncludedFunctions(
		whole(operators.Conditional), whole(operators.LogicalAnd), whole(operators.LogicalOr), whole(operators.LogicalNot),
		whole(operators.NotStrictlyFalse),
		whole(operators.Equals), whole(operators.NotEquals),
		whole(operators.Less), whole(operators.LessEquals), whole(operators.Greater), whole(operators.GreaterEquals),
		whole(operators.Index), whole(operators.In), whole(operators.OldIn), whole(operators.Negate),
		whole(overloads.Size), whole(overloads.Contains), whole(overloads.StartsWith), whole(overloads.EndsWith), whole(overloads.Matches),
		whole(overloads.TypeConvertBool), whole(overloads.TypeConvertDyn),
		some(overloads.TypeConvertInt, overloads.IntToInt, overloads.DoubleToInt, overloads.StringToInt),
		some(overloads.TypeConvertDouble, overloads.DoubleToDouble, overloads.IntToDouble, overloads.StringToDouble),
	)

func whole(name string) *celenv.Function { return celenv.NewFunction(name) }

func some(name string, ids ...string) *celenv.Function {
	var all []*celenv.Overload
	for _, id := range ids {
		all = append(all, &celenv.Overload{ID: id})
	}
	return celenv.NewFunction(name, all...)
}

// base is the environment without variables.
var base = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(standard)),
		cel.CrossTypeNumericComparisons(true),
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.ParserExpressionSizeLimit(SourceMax),
		cel.ParserRecursionLimit(NestingMax),
		cel.ExpressionNodeLimit(NodesMax),
	}
	options = append(options, functions()...)
	return cel.NewCustomEnv(append(options, stringFunctions()...)...)
})

// environments keeps one environment for each set of names; the sets are those
// our own packages use.
var environments sync.Map // names joined by "," → *cel.Env

func environment(names Names) (*cel.Env, error) {
	key := strings.Join(names.sorted, ",")
	if env, ok := environments.Load(key); ok {
		return env.(*cel.Env), nil
	}
	env, err := base()
	if err != nil {
		return nil, err
	}
	var vars []cel.EnvOption
	for _, name := range names.sorted {
		vars = append(vars, cel.Variable(name, cel.DynType))
	}
	if env, err = env.Extend(vars...); err != nil {
		return nil, err
	}
	kept, _ := environments.LoadOrStore(key, env)
	return kept.(*cel.Env), nil
}

// adapter lets callers pass canonical JSON as it is stored.
type adapter struct{ types.Adapter }

// NativeToValue decodes json.RawMessage and leaves the rest to CEL.
func (a adapter) NativeToValue(v any) ref.Val {
	if raw, ok := v.(json.RawMessage); ok {
		decoded, err := canon.Value(raw)
		if err != nil {
			return types.WrapErr(err)
		}
		v = decoded
	}
	return a.Adapter.NativeToValue(v)
}
