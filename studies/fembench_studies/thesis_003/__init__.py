"""Calzeta and de Souza (2008) repeated: execution graphs of master/slave programs."""
