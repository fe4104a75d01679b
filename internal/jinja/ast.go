package jinja

// node is a part of a template that writes output.
type node interface {
	render(s *state) error
}

type (
	textNode  struct{ text string }
	printNode struct {
		value expr
		line  int
	}
	ifNode struct {
		tests  []expr // one for each body except else
		bodies [][]node
	}
	forNode struct {
		targets []target
		over    expr
		filter  expr // may be nil
		body    []node
		orElse  []node
	}
	setNode struct {
		targets []target
		value   expr
		filters []filterCall // filters of a block
		body    []node       // set if value is nil
	}
	macroNode struct {
		name     string
		params   []string
		defaults []expr // nil for a parameter without default
		body     []node
	}
	callNode struct {
		macro *macroNode // the block's body, callable as caller()
		call  *call
	}
	filterNode struct {
		filters []filterCall
		body    []node
	}
	groupNode struct{ body []node } // {% generation %}, {% block %}
	loopNode  struct{ exit error }  // break and continue
)

// target is the left side of an assignment: a name, or an attribute of a namespace.
type target struct{ name, attribute string }

// expr is a part of a template with a value.
type expr interface {
	eval(s *state) (any, error)
}

type (
	literal  struct{ value any }
	nameExpr struct{ name string }
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, values []expr }
	unary    struct {
		op    string
		value expr
	}
	binary struct {
		op          string
		left, right expr
	}
	compare struct {
		first expr
		ops   []string
		rest  []expr
	}
	condition struct{ test, then, otherwise expr } // otherwise may be nil
	attribute struct {
		of   expr
		name string
	}
	subscript struct{ of, index expr }
	slice     struct{ of, start, stop, step expr } // each bound may be nil
	call      struct {
		fn     expr
		args   []expr
		kwargs []kwarg
	}
	filterExpr struct {
		value expr
		filterCall
	}
	testExpr struct {
		value   expr
		name    string
		args    []expr
		negated bool
	}
)

type kwarg struct {
	name  string
	value expr
}

type filterCall struct {
	name   string
	args   []expr
	kwargs []kwarg
}
