package jinja

// A node is a part of a template that writes something.
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
		tests  []expr // one for each body but an else
		bodies [][]node
	}
	forNode struct {
		targets []target
		over    expr
		filter  expr // or nil
		body    []node
		orElse  []node
	}
	setNode struct {
		targets []target
		value   expr
		filters []filterCall // of a block
		body    []node       // where value is nil
	}
	macroNode struct {
		name     string
		params   []string
		defaults []expr // nil for a parameter without one
		body     []node
	}
	callNode struct {
		macro *macroNode // the body of the block, as caller()
		call  *call
	}
	filterNode struct {
		filters []filterCall
		body    []node
	}
	groupNode struct{ body []node } // {% generation %}, {% block %}
	loopNode  struct{ exit error }  // break and continue
)

// A target is what set assigns to: a name, or an attribute of a namespace.
type target struct{ name, attribute string }

// An expr is a part of a template that has a value.
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
