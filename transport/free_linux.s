// This file is here so that functions of the runtime may be declared without a body.
