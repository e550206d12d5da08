package conventions

import (
	"go/ast"
	"go/token"
	"testing"
)

const longestFunction = 80 // lines, apart from functions that only return a table

func TestFunctionsAreShort(t *testing.T) {
	for _, f := range sources(t) {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && !f.isTest() && function.Body != nil && len(function.Body.List) > 1 && f.lines(function) > longestFunction {
				t.Errorf("%s: %s has %d lines, want at most %d", f.path, function.Name, f.lines(function), longestFunction)
			}
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() || f.syntax.Name.Name == "main" {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			for _, name := range undocumented(declaration) {
				t.Errorf("%s: %s says nowhere what it is", f.files.Position(name.Pos()), name)
			}
		}
	}
}

// undocumented returns the exported names of the declaration without a comment. A comment
// above a group documents all of its names.
func undocumented(declaration ast.Decl) []*ast.Ident {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && isReachable(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc == nil && d.Tok != token.IMPORT {
			return undocumentedSpecs(d.Specs)
		}
	}
	return nil
}

func undocumentedSpecs(specs []ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if s.Doc == nil && s.Comment == nil && name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// isReachable reports whether the function is not a method, or is a method of an exported
// type.
func isReachable(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	receiver := f.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return false
		}
	}
}
