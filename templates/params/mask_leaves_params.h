// The functions of leaves that a mask calls (tile/mask.cuh), each with the number of its slots. A
// file that includes this one defines
//
//   ANNULUS_COMPARED_LEAF(name, slots)   it compares positions with numbers or entries of lists, so
//                                        that the bits of a row are made at once
//   ANNULUS_SEARCHED_LEAF(name, slots)   it divides, looks bits up or searches for each element
//
ANNULUS_COMPARED_LEAF(causal, 0)
ANNULUS_COMPARED_LEAF(window, 2)
ANNULUS_COMPARED_LEAF(window_left, 1)
ANNULUS_COMPARED_LEAF(window_right, 1)
ANNULUS_COMPARED_LEAF(sink, 1)
ANNULUS_COMPARED_LEAF(global_first, 1)
ANNULUS_COMPARED_LEAF(queries, 2)
ANNULUS_COMPARED_LEAF(keys, 2)
ANNULUS_COMPARED_LEAF(documents, 2)
ANNULUS_COMPARED_LEAF(global_listed, 2)
ANNULUS_COMPARED_LEAF(vertical_slash, 4)
ANNULUS_SEARCHED_LEAF(dilated, 1)
ANNULUS_SEARCHED_LEAF(band, 2)
ANNULUS_SEARCHED_LEAF(level, 3)
ANNULUS_SEARCHED_LEAF(strided, 3)
ANNULUS_SEARCHED_LEAF(random, 5)
ANNULUS_SEARCHED_LEAF(segment, 2)
ANNULUS_SEARCHED_LEAF(axial, 2)
ANNULUS_SEARCHED_LEAF(natten, 3)
ANNULUS_SEARCHED_LEAF(blocks, 0)
ANNULUS_SEARCHED_LEAF(every, 2)
