// What the classes that solve cycles include, in one: precompiled, so that it is read once and not for each of them.
//
// Each class names what it needs of this itself (`codegen/rules/program.py`), for compilers that precompile nothing.
#pragma once
#include <dynagrad/outside/rules.hpp>
#include <dynagrad/solving/convergence.hpp>
#include <dynagrad/visiting/edges.hpp>
#include <dynagrad/visiting/ground.hpp>
#include <dynagrad/solving/adjoints.hpp>
#include <dynagrad/solving/adjoints.hpp>
#include <dynagrad/visiting/edges.hpp>
#include <dynagrad/changing/resolve.hpp>
#include <dynagrad/jets.hpp>
#include <dynagrad/outside/cotangents.hpp>
